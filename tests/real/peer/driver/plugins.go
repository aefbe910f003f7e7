// Copyright: (c) 2026, the podwire.cni authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"sort"

	"github.com/containernetworking/cni/libcni"
)

// Loads a single plugin's configuration, and the attachment.
func pluginAttachment(args []string) (*libcni.PluginConfig, *libcni.RuntimeConf, error) {
	conf, err := libcni.LoadConf(confDir(), args[0])
	if err != nil {
		return nil, nil, err
	}
	rt, err := runtimeConf(args[1])
	return conf, rt, err
}

func pluginAdd(args []string) error {
	conf, rt, err := pluginAttachment(args)
	if err != nil {
		return err
	}
	result, err := newCNI().AddNetwork(ctx, conf, rt)
	if err != nil {
		return err
	}
	return printJSON(result)
}

func pluginCheck(args []string) error {
	conf, rt, err := pluginAttachment(args)
	if err != nil {
		return err
	}
	return newCNI().CheckNetwork(ctx, conf, rt)
}

func pluginDel(args []string) error {
	conf, rt, err := pluginAttachment(args)
	if err != nil {
		return err
	}
	return newCNI().DelNetwork(ctx, conf, rt)
}

func pluginValidate(args []string) error {
	conf, err := libcni.LoadConf(confDir(), args[0])
	if err != nil {
		return err
	}
	capabilities, err := newCNI().ValidateNetwork(ctx, conf)
	if err != nil {
		return err
	}
	sort.Strings(capabilities)
	return printJSON(capabilities)
}

func pluginVersions(args []string) error {
	info, err := newCNI().GetVersionInfo(ctx, args[0])
	if err != nil {
		return err
	}
	return printJSON(info.SupportedVersions())
}

// What the cache has of an attachment: the result in the network's version, and what a DEL needs.
func cached(args []string) error {
	list, rt, err := attachment(args)
	if err != nil {
		return err
	}
	cni := newCNI()
	config, found, err := cni.GetNetworkListCachedConfig(list, rt)
	if err != nil {
		return err
	}
	result, err := cni.GetNetworkListCachedResult(list, rt)
	if err != nil {
		return err
	}
	if found == nil {
		return printJSON([]any{nil, result})
	}
	return printJSON([]any{string(config), found.NetNS, presentArgs(found.Args), presentMap(found.CapabilityArgs), result})
}
