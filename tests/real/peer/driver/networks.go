// Copyright: (c) 2026, the podwire.cni authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/types/create"
	"github.com/containernetworking/cni/pkg/utils"
)

var ctx = context.Background()

// Loads what every verb on an attachment needs. The network comes first, as in cnitool.
func attachment(args []string) (*libcni.NetworkConfigList, *libcni.RuntimeConf, error) {
	list, err := loadNetwork(args[0])
	if err != nil {
		return nil, nil, err
	}
	rt, err := runtimeConf(args[1])
	return list, rt, err
}

func add(args []string) error {
	list, rt, err := attachment(args)
	if err != nil {
		return err
	}
	result, err := newCNI().AddNetworkList(ctx, list, rt)
	if err != nil {
		return err
	}
	return printJSON(result)
}

func check(args []string) error {
	list, rt, err := attachment(args)
	if err != nil {
		return err
	}
	return newCNI().CheckNetworkList(ctx, list, rt)
}

func del(args []string) error {
	list, rt, err := attachment(args)
	if err != nil {
		return err
	}
	return newCNI().DelNetworkList(ctx, list, rt)
}

// gc NETWORK --none | gc NETWORK --valid ID/IFNAME... | gc NETWORK --valid=ID/IFNAME, the last two repeated and mixed
func gc(args []string) error {
	valid, err := validAttachments(args[1:])
	if err != nil {
		return err
	}
	list, err := loadNetwork(args[0])
	if err != nil {
		return err
	}
	return newCNI().GCNetworkList(ctx, list, &libcni.GCArgs{ValidAttachments: valid})
}

func validAttachments(args []string) ([]types.GCAttachment, error) {
	var given [][]string
	none := false
	for _, arg := range args {
		text, joined := strings.CutPrefix(arg, "--valid=")
		switch {
		case arg == "--none":
			none = true
		case arg == "--valid":
			given = append(given, nil)
		case joined:
			given = append(given, []string{text})
		default:
			given[len(given)-1] = append(given[len(given)-1], text)
		}
	}
	if none == (given != nil) || slices.ContainsFunc(given, func(texts []string) bool { return len(texts) == 0 }) {
		return nil, errors.New(
			"gc needs either --valid with at least one ID/IFNAME, or --none to delete all attachments")
	}
	valid := []types.GCAttachment{}
	for _, text := range slices.Concat(given...) {
		id, ifname, _ := strings.Cut(text, "/")
		err := utils.ValidateContainerID(id)
		if err == nil {
			err = utils.ValidateInterfaceName(ifname)
		}
		if err != nil {
			return nil, fmt.Errorf("--valid takes ID/IFNAME, not %q: %w", text, err)
		}
		valid = append(valid, types.GCAttachment{ContainerID: id, IfName: ifname})
	}
	return valid, nil
}

func status(args []string) error {
	list, err := loadNetwork(args[0])
	if err != nil {
		return err
	}
	return newCNI().GetStatusNetworkList(ctx, list)
}

func load(args []string) error {
	list, err := loadNetwork(args[0])
	if err != nil {
		return err
	}
	plugins := []string{}
	for _, plugin := range list.Plugins {
		plugins = append(plugins, plugin.Network.Type)
	}
	return printJSON(struct {
		Name         string   `json:"name"`
		CNIVersion   string   `json:"cniVersion"`
		DisableCheck bool     `json:"disableCheck"`
		DisableGC    bool     `json:"disableGC"`
		Plugins      []string `json:"plugins"`
	}{list.Name, list.CNIVersion, list.DisableCheck, list.DisableGC, plugins})
}

func validate(args []string) error {
	list, err := loadNetwork(args[0])
	if err != nil {
		return err
	}
	capabilities, err := newCNI().ValidateNetworkList(ctx, list)
	if err != nil {
		return err
	}
	// Go's order is that of a map, any.
	sort.Strings(capabilities)
	return printJSON(capabilities)
}

func listAttachments([]string) error { return attachmentsOf([]string{""}) }

func attachmentsOf(args []string) error {
	found, err := newCNI().GetCachedAttachments(args[0])
	if err != nil {
		return err
	}
	type shown struct {
		Network        string         `json:"network"`
		ContainerID    string         `json:"container_id"`
		IfName         string         `json:"ifname"`
		NetNS          string         `json:"netns"`
		Args           [][2]string    `json:"cni_args"`
		CapabilityArgs map[string]any `json:"capability_args"`
	}
	out := []shown{}
	for _, one := range found {
		out = append(out, shown{
			one.Network, one.ContainerID, one.IfName, one.NetNS, presentArgs(one.CniArgs), presentMap(one.CapabilityArgs),
		})
	}
	return printJSON(out)
}

func convert(args []string) error {
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	result, err := create.CreateFromBytes(data)
	if err != nil {
		return err
	}
	if result, err = result.GetAsVersion(args[0]); err != nil {
		return err
	}
	return printJSON(result)
}

// The command line shows what is missing as empty, not as null.
func presentArgs(args [][2]string) [][2]string {
	if args == nil {
		return [][2]string{}
	}
	return args
}

func presentMap(values map[string]any) map[string]any {
	if values == nil {
		return map[string]any{}
	}
	return values
}
