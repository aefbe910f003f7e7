# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
#
# What a copy of bash does as a plugin: BASH_ENV names this file, and root runs only ELF files.
case ${CNI_COMMAND-} in
  VERSION)
    echo '{"cniVersion": "1.1.0", "supportedVersions": ["0.3.1", "0.4.0", "1.0.0", "1.1.0"]}'
    exit 0
    ;;
  STATUS)
    case ${0##*/} in
      *unready) echo '{"cniVersion": "1.1.0", "code": 50, "msg": "the datastore is gone"}' && exit 1 ;;
      *hangs) sleep 100 ;;
    esac
    exit 0
    ;;
esac
