// Copyright: (c) 2026, the podwire.cni authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/libcni"
)

func environment(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

func confDir() string { return environment("NETCONFPATH", "/etc/cni/net.d") }

func newCNI() *libcni.CNIConfig {
	var path []string
	if value := os.Getenv("CNI_PATH"); value != "" {
		path = filepath.SplitList(value)
	}
	return libcni.NewCNIConfigWithCacheDir(path, os.Getenv("CNI_CACHE_DIR"), nil)
}

func loadNetwork(name string) (*libcni.NetworkConfigList, error) {
	return libcni.LoadNetworkConf(confDir(), name)
}

func runtimeConf(netns string) (*libcni.RuntimeConf, error) {
	netns, err := filepath.Abs(netns)
	if err != nil {
		return nil, err
	}
	id := sha512.Sum512([]byte(netns))
	rt := &libcni.RuntimeConf{
		ContainerID: environment("CNI_CONTAINERID", fmt.Sprintf("cnitool-%x", id[:10])),
		NetNS:       netns,
		IfName:      environment("CNI_IFNAME", "eth0"),
	}
	if rt.Args, err = parseArgs(os.Getenv("CNI_ARGS")); err != nil {
		return nil, err
	}
	if text := os.Getenv("CAP_ARGS"); text != "" {
		if err := json.Unmarshal([]byte(text), &rt.CapabilityArgs); err != nil {
			return nil, fmt.Errorf("CAP_ARGS: %w", err)
		}
	}
	return rt, nil
}

func parseArgs(text string) ([][2]string, error) {
	var pairs [][2]string
	if text == "" {
		return nil, nil
	}
	for _, pair := range strings.Split(text, ";") {
		parts := strings.Split(pair, "=")
		if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
			return nil, fmt.Errorf("invalid CNI_ARGS pair %q", pair)
		}
		pairs = append(pairs, [2]string{parts[0], parts[1]})
	}
	return pairs, nil
}
