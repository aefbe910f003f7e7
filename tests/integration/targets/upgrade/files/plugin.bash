# Sourced (BASH_ENV) by copies of bash that play the plugins of a broken release: they answer VERSION, and nothing else works.

[ -n "${CNI_COMMAND-}" ] || return 0
unset BASH_ENV
case "$CNI_COMMAND" in
  VERSION) printf '{"cniVersion": "1.0.0", "supportedVersions": ["0.3.1", "0.4.0", "1.0.0", "1.1.0"]}' ;;
  ADD)
    printf '{"cniVersion": "1.0.0", "code": 999, "msg": "this release is broken"}'
    exit 1
    ;;
esac
exit 0
