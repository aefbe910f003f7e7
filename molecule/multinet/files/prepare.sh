#!/usr/bin/env bash
# Makes podwire-multinet, the plugin stuck, and the interface that the network wire is on, at each boot.
set -euo pipefail
mkdir -p /opt/cni/bin
cd /usr/local/src/module_utils
python3 -m libcni bundle _plugins/multinet.py /opt/cni/bin/podwire-multinet

# Its ADD never ends while /run/stuck is there, and its DEL fails.
cat >/opt/cni/bin/stuck <<'END'
#!/usr/bin/bash
case "$CNI_COMMAND" in
  VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}' ;;
  ADD)
    if [ -e /run/stuck ]; then
      echo $$ >/run/stuck.pid
      exec sleep 1000
    fi
    echo '{"cniVersion": "1.0.0", "code": 100, "msg": "stuck"}'
    exit 1
    ;;
  DEL)
    [ ! -e /run/stuck-del ] || { echo '{"cniVersion": "1.0.0", "code": 100, "msg": "still stuck"}'; exit 1; }
    ;;
esac
END
chmod 0755 /opt/cni/bin/stuck

cat >/etc/systemd/system/wire0.service <<'END'
[Unit]
Description=An interface for the network wire, and one of the machine on it
Before=containerd.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/ip link add wire0 type dummy
ExecStart=/usr/sbin/ip link set wire0 up
ExecStart=/usr/sbin/ip link add wire-host link wire0 type macvlan mode bridge
ExecStart=/usr/sbin/ip address add 10.97.0.1/24 dev wire-host
ExecStart=/usr/sbin/ip link set wire-host up
[Install]
WantedBy=multi-user.target
END
systemctl enable --quiet --now wire0.service
