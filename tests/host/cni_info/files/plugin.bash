# Sourced (BASH_ENV) by copies of bash that play plugins: notes that one was executed, and answers VERSION. EXECUTED is the file.

[ -n "${CNI_COMMAND-}" ] || return 0
echo "${0##*/} $CNI_COMMAND" >>"$EXECUTED"
echo '{"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}'
exit 0
