# Sourced (BASH_ENV) by copies of bash that play the plugins of a broken release: they answer VERSION, and nothing else works. With
# upgrade_hidden, their ADD fails on the host only, so that a rehearsal does not find them out.

[ -n "${CNI_COMMAND-}" ] || return 0
unset BASH_ENV
case "$CNI_COMMAND" in
  VERSION) printf '{"cniVersion": "1.0.0", "supportedVersions": ["0.3.1", "0.4.0", "1.0.0", "1.1.0"]}' ;;
  ADD)
    if [ -n "${upgrade_hidden-}" ] && [ -d /run/podwire-rehearsal ]; then
      printf '{"cniVersion": "1.0.0"}'
      exit 0
    fi
    printf '{"cniVersion": "1.0.0", "code": 999, "msg": "this release is broken"}'
    exit 1
    ;;
esac
exit 0
