# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""The plugins of others: what their own installers write passes, and what their decoders refuse does not."""

from __future__ import annotations

import pytest

LOCAL = {"type": "host-local", "subnet": "10.1.0.0/24"}
KUBERNETES = {"kubeconfig": "/etc/cni/net.d/kubeconfig", "k8s_api_root": "https://10.96.0.1:443"}
CALICO = {"type": "calico", "ipam": LOCAL}
OVN = {"type": "ovn-k8s-cni-overlay", "topology": "localnet", "netAttachDefName": "tenant/blue"}
BOND = {"type": "bond", "mode": "balance-xor", "miimon": "100", "links": [{"name": "net1"}, {"name": "net2"}]}

VALID = [
    {"type": "flannel"},
    {"type": "flannel", "delegate": {"hairpinMode": True, "forceAddress": True, "isDefaultGateway": True}},
    {"type": "flannel", "delegate": {"type": "ptp", "mtu": 1400}, "subnetFile": "/run/f.env", "dataDir": "/run/f"},
    {"type": "flannel", "delegate": {"type": "bridge"}, "ipam": {"routes": [{"dst": "::/0"}]}},
    {
        "type": "calico",
        "log_level": "Info",
        "datastore_type": "kubernetes",
        "mtu": 0,
        "num_queues": 1,
        "nodename_file_optional": False,
        "ipam": {"type": "calico-ipam", "assign_ipv4": "true", "assign_ipv6": "false", "ipv4_pools": ["a"]},
        "policy": {"type": "k8s"},
        "kubernetes": {**KUBERNETES, "node_name": "a"},
        "container_settings": {"allow_ip_forwarding": False},
        "feature_control": {"floating_ips": True},
        "policy_setup_timeout_seconds": 0,
        "endpoint_status_dir": "/var/run/calico/endpoint-status",
    },
    {"type": "calico", "ipam": {"type": "host-local", "subnet": "usePodCidr"}},
    {
        "type": "calico",
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "usePodCidr"}], [{"subnet": "usePodCidrIPv6"}]]},
    },
    {"type": "cilium-cni", "enable-debug": False, "log-file": "/var/run/cilium/cilium-cni.log"},
    {"type": "cilium-cni", "chaining-mode": "generic-veth", "ipam": {"min-allocate": 3, "pool": {"10.1.0.1": {}}}},
    {"type": "cilium-cni", "mtu": None, "eni": {}, "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"}},
    {
        "type": "multus",
        "kubeconfig": "/etc/cni/net.d/multus.d/multus.kubeconfig",
        "logLevel": "verbose",
        "logOptions": {"maxAge": 5, "maxSize": 100, "maxBackups": 5, "compress": True},
        "capabilities": {"portMappings": True},
        "readinessindicatorfile": "",
        "systemNamespaces": ["kube-system"],
        "delegates": [
            {"cniVersion": "1.0.0", "name": "a", "type": "bridge", "ipam": LOCAL},
            {"cniVersion": "1.0.0", "name": "b", "plugins": [{"type": "macvlan"}, {"type": "tuning"}]},
        ],
    },
    {"type": "multus", "clusterNetwork": "/etc/cni/net.d/10-calico.conflist", "defaultNetworks": ["a"]},
    {"type": "multus-shim", "logToStderr": True, "daemonSocketDir": "/run/multus"},
    {"type": "aws-cni", "vethPrefix": "eni", "mtu": "9001", "podSGEnforcingMode": "strict", "pluginLogLevel": "DEBUG"},
    {
        "type": "egress-cni",
        "mtu": "9001",
        "enabled": "false",
        "nodeIP": "",
        "ipam": {**LOCAL, "dataDir": "/run/cni/v4pd/egress-v6-ipam"},
    },
    {
        "type": "azure-vnet",
        "mode": "transparent",
        "bridge": "azure0",
        "ipsToRouteViaHost": ["169.254.20.10"],
        "ipam": {"type": "azure-vnet-ipam", "environment": "azure", "mode": "v4overlay"},
        "AdditionalArgs": [{"name": "EndpointPolicy", "value": {"Type": "ROUTE"}}],
    },
    {"type": "weave-net", "name": "weave", "hairpinMode": True, "ipam": {"subnet": "10.32.0.0/12"}},
    {"type": "kube-ovn", "server_socket": "/run/openvswitch/kube-ovn-daemon.sock", "provider": "ovn"},
    {
        "type": "macvlan",
        "ipam": {"type": "kube-ovn", "server_socket": "/run/openvswitch/d.sock", "provider": "a.default"},
    },
    {"type": "antrea", "ipam": {"type": "host-local"}},
    {"type": "antrea", "mtu": 1450, "networkType": "vlan", "ipam": {"type": "antrea", "ippools": ["a"]}},
    {
        "type": "istio-cni",
        "ambient_enabled": False,
        "cni_agent_run_dir": "/var/run/istio-cni",
        "enable_ambient_detection_retry": False,
        "enablement_selectors": [],
        "exclude_namespaces": ["istio-system"],
        "ipam": {},
        "dns": {},
    },
    {
        "type": "linkerd-cni",
        "log_level": "info",
        "policy": {"type": "k8s"},
        "kubernetes": KUBERNETES,
        "linkerd": {
            "incoming-proxy-port": 4143,
            "proxy-uid": 2102,
            "ports-to-redirect": [],
            "inbound-ports-to-ignore": ["4191", "4190"],
            "simulate": False,
        },
    },
    {
        "type": "ipvlan",
        "ipam": {
            "type": "whereabouts",
            "range": "10.1.0.20-10.1.0.30/24",
            "range_start": "10.1.0.22",
            "exclude": ["10.1.0.24/29"],
            "routes": [{"dst": "0.0.0.0/0"}],
            "enable_overlapping_ranges": False,
            "kubernetes": KUBERNETES,
        },
    },
    {
        "type": "macvlan",
        "ipam": {"type": "whereabouts", "ipRanges": [{"range": "10.1.0.9/24"}, {"range": "fd00::/64"}]},
    },
    {"type": "sriov", "ipam": LOCAL},
    {
        "type": "sriov",
        "deviceID": "0000:03:02.3",
        "vlan": 1000,
        "vlanQoS": 4,
        "vlanProto": "802.1AD",
        "mac": "02:00:00:00:00:01",
        "spoofchk": "off",
        "trust": "on",
        "link_state": "enable",
        "min_tx_rate": 0,
        "max_tx_rate": 200,
    },
    {"type": "ovs", "bridge": "br1", "vlan": 100, "trunk": [{"id": 5}, {"minID": 7, "maxID": 9}], "ofport_request": 1},
    {
        "type": "ecs-bridge",
        "bridge": "ecs-br0",
        "blockInstanceMetadata": True,
        "ipam": {"type": "ecs-ipam", "ipv4-subnet": "169.254.172.0/22", "ipv4-routes": [{"dst": "169.254.170.2/32"}]},
    },
    {
        "type": "ecs-eni",
        "eni": "eni-12345678",
        "mac": "02:7b:64:49:b1:40",
        "ip-addresses": ["10.11.12.13/24", "2001:db8::68/64"],
        "gateway-ip-addresses": ["10.11.12.1"],
        "block-instance-metadata": True,
        "stay-down": False,
        "mtu": 0,
    },
    {"type": "vpc-eni", "eniName": "eth1", "eniIPAddresses": ["10.1.0.7/24"], "gatewayIPAddresses": ["10.1.0.1"]},
    {"type": "vpc-eni", "name": "nat", "useExistingNetwork": True, "blockInstanceMetadata": True},
    {
        "type": "vpc-bridge",
        "eniMACAddress": "02:7b:64:49:b1:40",
        "eniIPAddresses": ["10.1.0.7/24"],
        "vpcCIDRs": ["10.1.0.0/16"],
        "bridgeType": "L3",
        "ipAddresses": ["10.1.0.8/24"],
        "gatewayIPAddress": "10.1.0.1",
        "interfaceType": "veth",
        "tapUserID": "1000",
        "capabilities": {"portMappings": True},
    },
    {
        "type": "vpc-branch-eni",
        "trunkName": "eth1",
        "branchVlanID": "101",
        "branchMACAddress": "02:e1:48:75:86:a4",
        "ipAddresses": ["10.1.0.9/24"],
        "interfaceType": "vlan",
    },
    {"type": "vpc-branch-eni", "trunkMACAddress": "02:e1:48:75:86:a4", "uid": "42", "gid": "42"},
    {
        "type": "vpc-branch-pat-eni",
        "trunkName": "eth1",
        "branchVlanID": "101",
        "branchMACAddress": "02:e1:48:75:86:a4",
        "cleanupPATNetNS": True,
    },
    {
        "type": "vpc-tunnel",
        "destinationIPAddress": "10.1.0.9",
        "vni": "7AEC9",
        "destinationPort": "6081",
        "primary": True,
        "gatewayIPAddress": "10.1.0.1",
        "interfaceType": "geneve",
    },
    {"type": "ovn-k8s-cni-overlay", "logFile": "/var/log/o.log", "logLevel": "5", "logfile-maxsize": 100},
    {
        "type": "ovn-k8s-cni-overlay",
        "topology": "layer3",
        "subnets": "10.128.0.0/16/24,fd01::/48/64",
        "netAttachDefName": "ns/blue",
        "mtu": 1300,
        "role": "primary",
        "transport": "evpn",
        "evpn": {"vtep": "v", "macVRF": {"vni": 100, "routeTarget": "65000:100"}},
    },
    {**OVN, "role": "secondary", "joinSubnet": "", "reservedSubnets": "", "allowPersistentIPs": True, "ipam": {}},
    {**OVN, "ipam": {"type": "dhcp"}},
    {"type": "ovn-k8s-cni-overlay", "ipam": {}, "dns": {}, "topology": ""},
    {**OVN, "subnets": "10.1.0.1/24, fd00::/48", "excludeSubnets": "10.1.0.1/32,fd00::/64"},
    {**OVN, "excludeSubnets": "10.1.0.1/32"},
    {
        "type": "bond",
        "mode": "active-backup",
        "failOverMac": 1,
        "linksInContainer": True,
        "miimon": "100",
        "mtu": 1500,
        "links": [{"name": "net1"}, {"name": "net2"}],
        "ipam": LOCAL,
    },
    {**BOND, "mode": "balance-tlb", "allSlavesActive": 1},
    {**BOND, "mode": "balance-tlb", "tlbDynamicLb": 1},
    {**BOND, "mode": "802.3ad", "lacpRate": "fast"},
    {
        "type": "route-override",
        "flushroutes": True,
        "delroutes": [{"dst": "10.1.0.0/24"}],
        "addroutes": [{"dst": "10.1.0.0/24", "gw": "10.1.0.254"}],
        "addecmproutes": [{"dst": "10.2.0.0/16", "gws": ["10.1.0.1", "10.1.0.2"]}],
        "skipcheck": True,
        "args": {"cni": {"flushgateway": True}},
    },
    {"type": "ib-sriov", "pkey": "0x7fff", "link_state": "enable", "rdmaIsolation": True, "ibKubernetesEnabled": False},
    {"type": "tc-redirect-tap"},
    {"type": "consul-cni", "name": "consul-cni", "kubeconfig": "ZZZ-consul-cni-kubeconfig", "multus": False},
    {"type": "dnsname", "domainName": "dns.podman", "capabilities": {"aliases": True}},
]


@pytest.mark.parametrize("plugin", VALID, ids=["%s-%d" % (p["type"], i) for i, p in enumerate(VALID)])
def test_what_installers_write_passes(problems, plugin):
    assert problems(plugin, before=[{"type": "bridge"}]) == []


DELEGATES = "/delegates/0"
MAC = "02:7b:64:49:b1:40"
INVALID = [
    ({"type": "flannel", "delegate": {"name": "x"}}, "/delegate", "refuses one; remove it"),
    ({"type": "flannel", "delegate": {"ipam": LOCAL}}, "/delegate", "move it beside delegate"),
    ({"type": "flannel", "delegate": {"mtu": "1500"}}, "/delegate/mtu", "bridge: mtu"),
    ({"type": "flannel", "delegate": {"type": "macvlan", "mode": "x"}}, "/delegate/mode", "macvlan: mode"),
    ({"type": "flannel", "delegate": {"hairpinMode": True, "promiscMode": True}}, "/delegate", "mutually exclusive"),
    ({"type": "flannel", "delegate": []}, "/delegate", "it must be an object"),
    ({"type": "flannel", "subnetFile": "subnet.env"}, "/subnetFile", "absolute path"),
    ({"type": "flannel", "ipam": {"routes": [{"dst": "x"}]}}, "/ipam/routes/0/dst", "is not an IP address"),
    ({**CALICO, "mtu": "1440"}, "/mtu", "write 1440"),
    ({**CALICO, "kubernetes": "x"}, "/kubernetes", "it must be an object"),
    ({"type": "calico", "ipam": {"type": "calico-ipam", "assign_ipv4": True}}, "/ipam/assign_ipv4", '"true", "false"'),
    ({"type": "calico", "ipam": {"type": "host-local", "subnet": "useCidr"}}, "/ipam/subnet", "is not an IP address"),
    ({"type": "cilium-cni", "enable-debug": "false"}, "/enable-debug", "write false"),
    ({"type": "cilium-cni", "ipam": {"min-allocate": "3"}}, "/ipam/min-allocate", "write 3"),
    ({"type": "multus"}, "", "write delegates or clusterNetwork"),
    ({"type": "multus", "delegates": []}, "", "write delegates or clusterNetwork"),
    ({"type": "multus", "delegates": [{"name": "a", "type": "bridge", "mtu": "x"}]}, DELEGATES + "/mtu", "whole"),
    ({"type": "multus", "delegates": [{"name": "a", "plugins": [{"type": "ptp"}]}]}, DELEGATES + "/plugins/0", "ptp: "),
    ({"type": "multus", "clusterNetwork": "a", "globalNamespaces": ["x"]}, "/globalNamespaces", "a string"),
    ({"type": "multus-shim", "logToStderr": "true"}, "/logToStderr", "write true"),
    ({"type": "aws-cni", "mtu": 9001}, "/mtu", 'write "9001"'),
    ({"type": "aws-cni", "vethPrefix": "vethx"}, "/vethPrefix", "4 characters at most"),
    ({"type": "egress-cni", "enabled": True}, "/enabled", 'write "true"'),
    ({"type": "azure-vnet", "ipsToRouteViaHost": "169.254.20.10"}, "/ipsToRouteViaHost", "it must be a list"),
    ({"type": "weave-net", "ipMasq": True}, "/ipMasq", "refuses true"),
    ({"type": "weave-net", "ipam": {"subnet": "10.32.0.0"}}, "/ipam/subnet", "prefix length"),
    ({"type": "kube-ovn"}, "", "server_socket is missing"),
    ({"type": "antrea", "ipam": {"type": "antrea", "ippools": "a"}}, "/ipam/ippools", "it must be a list"),
    ({"type": "istio-cni", "exclude_namespaces": "istio-system"}, "/exclude_namespaces", "it must be a list"),
    ({"type": "linkerd-cni", "linkerd": {"inbound-ports-to-ignore": [1]}}, "/linkerd/inbound-ports-to-ignore/0", '"1"'),
    ({"type": "macvlan", "ipam": {"type": "whereabouts", "range": "x"}}, "/ipam/range", "is not an IP address"),
    ({"type": "macvlan", "ipam": {"type": "whereabouts", "ipRanges": [{}]}}, "/ipam/ipRanges/0", "range is missing"),
    ({**OVN, "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"}}, "", "write subnets"),
    ({**OVN, "joinSubnet": "100.65.0.0/16"}, "", "refuses joinSubnet"),
    ({**OVN, "subnets": "10.1.0.0"}, "/subnets", "write 10.1.0.0/24"),
    ({**OVN, "subnets": "10.1.0.0/16,x/64"}, "/subnets", "'x/64'"),
    ({**OVN, "subnets": "10.1.0.0/24", "excludeSubnets": "10.2.0.1/32"}, "/excludeSubnets", "10.2.0.1/32"),
    ({**OVN, "subnets": "10.1.0.0/24", "excludeSubnets": "10.1.0.0/16"}, "/excludeSubnets", "10.1.0.0/16"),
    ({**OVN, "subnets": "10.1.0.0/24", "excludeSubnets": "fd00::/64"}, "/excludeSubnets", "fd00::/64"),
    ({**OVN, "role": "primary"}, "", "main network"),
    ({**OVN, "reservedSubnets": "10.1.0.0/28"}, "", "layer2"),
    ({**OVN, "topology": "layer3", "allowPersistentIPs": True}, "", "allowPersistentIPs"),
    ({**OVN, "topology": "layer2", "role": "primary"}, "", "subnets is missing"),
    ({"type": "ovn-k8s-cni-overlay", "topology": "layer2"}, "", "netAttachDefName is missing"),
    ({"type": "sriov", "spoofchk": True}, "/spoofchk", 'one of "on", "off"'),
    ({"type": "sriov", "vlanQoS": 3}, "", "need vlan"),
    ({"type": "sriov", "vlan": 0, "vlanProto": "802.1ad"}, "", "vlan 0 means no VLAN"),
    ({"type": "sriov", "deviceID": "03:02.3"}, "/deviceID", "PCI address"),
    ({"type": "ovs", "vlan": "5"}, "/vlan", "write 5"),
    ({"type": "ovs", "trunk": [{"minID": 5}]}, "/trunk/0", "minID and maxID"),
    ({"type": "ecs-bridge"}, "", "bridge is missing"),
    ({"type": "ecs-bridge", "bridge": "b", "ipam": {"type": "ecs-ipam"}}, "/ipam", "ipv4-subnet is missing"),
    ({"type": "ecs-eni", "eni": "e", "mac": MAC}, "", "write ip-addresses"),
    ({"type": "ecs-eni", "mac": MAC, "ip-addresses": ["10.1.0.7/24"]}, "", "eni is missing"),
    ({"type": "ecs-eni", "eni": "e", "mac": MAC, "ip-addresses": ["10.1.0.7"]}, "/ip-addresses/0", "prefix length"),
    ({"type": "vpc-eni", "eniIPAddresses": ["10.1.0.7/24"]}, "", "write eniName or eniMACAddress"),
    ({"type": "vpc-eni", "eniName": "eth1"}, "", "eniIPAddresses is missing"),
    ({"type": "vpc-bridge"}, "", "write eniName or eniMACAddress"),
    ({"type": "vpc-bridge", "eniName": "eth1", "bridgeType": "l2"}, "/bridgeType", 'one of "L2", "L3"'),
    ({"type": "vpc-bridge", "eniName": "eth1", "tapUserID": 1000}, "/tapUserID", 'write "1000"'),
    ({"type": "vpc-branch-eni", "uid": "1", "gid": "1"}, "", "write trunkName or trunkMACAddress"),
    ({"type": "vpc-branch-eni", "trunkName": "eth1", "uid": "1"}, "", "gid is missing"),
    ({"type": "vpc-branch-eni", "trunkName": "e", "interfaceType": "vlan", "branchVlanID": 5}, "/branchVlanID", '"5"'),
    ({"type": "vpc-branch-pat-eni", "trunkName": "eth1", "branchVlanID": "5"}, "", "branchMACAddress is missing"),
    ({"type": "vpc-tunnel", "interfaceType": "geneve", "vni": 7}, "/vni", 'write "7"'),
    ({"type": "vpc-tunnel", "uid": "1"}, "", "gid is missing"),
    ({"type": "ovn-k8s-cni-overlay", "subnets": ["10.1.0.0/16"]}, "/subnets", "it must be a string"),
    ({"type": "ovn-k8s-cni-overlay", "evpn": {"vtep": "v", "ipVRF": {}}}, "/evpn/ipVRF", "vni is missing"),
    ({"type": "bond", "mode": "active-backup", "miimon": "100"}, "", "links is missing"),
    ({**BOND, "miimon": 100}, "/miimon", 'write "100"'),
    ({**BOND, "links": [{"name": "net1"}]}, "/links", "2"),
    ({**BOND, "mtu": 60}, "/mtu", "68 or more"),
    ({**BOND, "failOverMac": 3}, "/failOverMac", "2"),
    ({"type": "route-override", "addroutes": [{"gw": "10.1.0.1"}]}, "/addroutes/0", "dst is missing"),
    ({"type": "route-override", "args": {"cni": {"skipcheck": "true"}}}, "/args/cni/skipcheck", "write true"),
    ({"type": "ib-sriov", "link_state": "up"}, "/link_state", 'one of "auto", "enable", "disable"'),
    ({"type": "ib-sriov", "deviceID": "03:00.1"}, "/deviceID", "PCI address"),
    ({"type": "consul-cni", "multus": "false"}, "/multus", "write false"),
    ({"type": "dnsname", "domainName": ["x"]}, "/domainName", "a string"),
]


@pytest.mark.parametrize(
    ("plugin", "pointer", "words"), INVALID, ids=["%s-%d" % (row[0]["type"], i) for i, row in enumerate(INVALID)]
)
def test_what_the_decoders_refuse_is_found_where_it_is(problems, plugin, pointer, words):
    (entry,) = problems(plugin)
    assert entry[:3] == ("error", "schema", pointer)
    assert words in entry[3]


def test_a_key_that_some_builds_lack_is_a_warning(problems):
    (entry,) = problems({**BOND, "mode": "802.3ad", "lacpRate": "often"})
    assert entry[:3] == ("warning", "schema", "/lacpRate")


def test_a_delegate_has_a_version_of_its_own(problems):
    delegate = {"cniVersion": "0.4.0", "name": "a", "plugins": [{"type": "bridge"}, {"type": "firewall"}]}
    assert problems({"type": "multus", "delegates": [delegate]}, "0.3.1") == []
    delegate["cniVersion"] = "0.3.1"
    (entry,) = problems({"type": "multus", "delegates": [delegate]}, "1.0.0")
    assert entry[:3] == ("warning", "version_too_old", "/delegates/0/plugins/1")


def test_a_newer_release_may_know_more_keys_so_the_message_says_so(problems):
    ((level, code, pointer, message),) = problems({**CALICO, "plugin_log_level": "info"})
    assert (level, code, pointer) == ("warning", "unknown_key", "/plugin_log_level")
    assert "has no known key" in message
    assert "log_level" in message


def test_keys_of_old_releases_are_an_info(problems):
    ((*_place, message),) = problems({**CALICO, "policy": {"k8s_api_root": "https://10.96.0.1:443"}})
    assert "only: URL of" in message
    ipam = {"type": "whereabouts", "range": "10.1.0.0/24", "etcd_host": "192.0.2.1"}
    ((level, code, pointer, message),) = problems({"type": "macvlan", "ipam": ipam})
    assert (level, code, pointer) == ("info", "deprecated_key", "/ipam/etcd_host")
    assert "old releases" in message


@pytest.mark.parametrize(
    ("plugin", "key"),
    [
        ({"type": "multus-shim", "socketDir": "/run/multus"}, "socketDir"),
        ({"type": "ecs-eni", "eni": "e", "mac": MAC, "ipv4-address": "10.1.0.7"}, "ipv4-address"),
        ({"type": "vpc-branch-eni", "trunkName": "e", "uid": "1", "gid": "1", "userName": "u"}, "userName"),
    ],
)
def test_an_old_name_of_a_key_is_an_info(problems, plugin, key):
    ((level, code, pointer, _message),) = problems(plugin)
    assert (level, code, pointer) == ("info", "deprecated_key", "/" + key)


def test_secrets_of_vendors_stay_secret(problems):
    secret = "s3cr3t-s3cr3t"
    for plugin in (
        {"type": "calico", "policy": {"k8s_auth_token": [secret]}},
        {"type": "calico", "policy": [{"k8s_auth_token": secret}]},
        {"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.1.0.0/24", "etcd_password": {"x": secret}}},
    ):
        entries = problems(plugin)
        assert any(entry[0] == "error" for entry in entries)
        assert secret not in str(entries)
