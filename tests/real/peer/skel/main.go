// Copyright: (c) 2026, the podwire.cni authors
// Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
// SPDX-License-Identifier: BSD-2-Clause

// A plugin on Go's pkg/skel whose callbacks do as they are told by the file PROBE names. It writes what they got to
// the file PROBE_CALLS. tests/unit/plugins/module_utils/libcni/skel/probe.py is the same in Python.
package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/types/create"
	"github.com/containernetworking/cni/pkg/version"
)

type order struct {
	Do      string          `json:"do"`
	Text    string          `json:"text"`
	Code    *uint           `json:"code"`
	Msg     string          `json:"msg"`
	Details string          `json:"details"`
	Exit    int             `json:"exit"`
	Result  json.RawMessage `json:"result"`
	Version string          `json:"version"`
}

type orders struct {
	Callbacks map[string]order `json:"callbacks"`
	Versions  *[]string        `json:"versions"`
	About     string           `json:"about"`
}

type probeArgs struct {
	types.CommonArgs
	IP                         net.IP
	K8S_POD_NAME               types.UnmarshallableString
	K8S_POD_INFRA_CONTAINER_ID types.UnmarshallableString
	Flag                       types.UnmarshallableBool
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(70)
	}
}

func (o order) asError() error {
	code := uint(999)
	if o.Code != nil {
		code = *o.Code
	}
	return types.NewError(code, o.Msg, o.Details)
}

func printValue(value any) error {
	text, err := json.Marshal(value)
	fail(err)
	fmt.Print(string(text))
	return nil
}

func loadArgs(args string) error {
	var loaded probeArgs
	if err := types.LoadArgs(args, &loaded); err != nil {
		return err
	}
	ip := ""
	if loaded.IP != nil {
		ip = loaded.IP.String()
	}
	return printValue(map[string]any{
		"Flag": loaded.Flag, "IP": ip, "IgnoreUnknown": loaded.IgnoreUnknown,
		"K8S_POD_INFRA_CONTAINER_ID": loaded.K8S_POD_INFRA_CONTAINER_ID, "K8S_POD_NAME": loaded.K8S_POD_NAME,
	})
}

func prevResult(stdin []byte) error {
	conf := types.PluginConf{}
	if err := json.Unmarshal(stdin, &conf); err != nil {
		return err
	}
	if err := version.ParsePrevResult(&conf); err != nil {
		return err
	}
	if conf.PrevResult == nil {
		fmt.Print("no prevResult")
		return nil
	}
	return types.PrintResult(conf.PrevResult, conf.CNIVersion)
}

func (o order) run(args *skel.CmdArgs) error {
	switch o.Do {
	case "print", "exit", "print_and_error":
		fmt.Print(o.Text)
	case "stderr":
		fmt.Fprint(os.Stderr, o.Text)
	}
	switch o.Do {
	case "exit":
		os.Exit(o.Exit)
	case "panic":
		panic(o.Text)
	case "cni_error", "print_and_error":
		return o.asError()
	case "wrapped_cni_error":
		return fmt.Errorf("%s: %w", o.Text, o.asError())
	case "joined_errors":
		return errors.Join(errors.New(o.Text), o.asError())
	case "plain_error":
		return errors.New(o.Text)
	case "os_error":
		_, err := os.Open(o.Text)
		return err
	case "print_result", "return_result":
		result, err := create.CreateFromBytes(o.Result)
		if err != nil {
			return err
		}
		wanted := o.Version
		if o.Do == "return_result" {
			decoder := version.ConfigDecoder{}
			wanted, err = decoder.Decode(args.StdinData)
			fail(err)
		}
		return types.PrintResult(result, wanted)
	case "prev_result":
		return prevResult(args.StdinData)
	case "load_args":
		return loadArgs(args.Args)
	case "load_args_common":
		loaded := types.CommonArgs{}
		if err := types.LoadArgs(args.Args, &loaded); err != nil {
			return err
		}
		return printValue(map[string]any{"IgnoreUnknown": loaded.IgnoreUnknown})
	}
	return nil
}

func main() {
	text, err := os.ReadFile(os.Getenv("PROBE"))
	fail(err)
	spec := orders{}
	fail(json.Unmarshal(text, &spec))
	calls, err := os.OpenFile(os.Getenv("PROBE_CALLS"), os.O_WRONLY|os.O_APPEND, 0)
	fail(err)
	callback := func(name string) func(*skel.CmdArgs) error {
		o, given := spec.Callbacks[name]
		if !given {
			return nil
		}
		return func(args *skel.CmdArgs) error {
			fail(json.NewEncoder(calls).Encode(map[string]string{
				"callback": name, "stdin": hex.EncodeToString(args.StdinData), "args": args.Args,
				"container_id": args.ContainerID, "ifname": args.IfName, "netns": args.Netns,
				"netns_override": args.NetnsOverride, "path": args.Path,
			}))
			return o.run(args)
		}
	}
	supported := version.All
	if spec.Versions != nil {
		supported = version.PluginSupports(*spec.Versions...)
	}
	skel.PluginMainFuncs(skel.CNIFuncs{
		Add: callback("add"), Check: callback("check"), Del: callback("del"),
		GC: callback("gc"), Status: callback("status"),
	}, supported, spec.About)
}
