// Copyright: (c) 2026, the podwire.cni authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// The command line of this collection's libcni, done by Go's: same commands, same environment, same output. tests/real/peer runs
// both and compares.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

var commands = map[string]func(args []string) error{
	"add":              add,
	"check":            check,
	"del":              del,
	"gc":               gc,
	"status":           status,
	"load":             load,
	"validate":         validate,
	"list-attachments": listAttachments,
	"convert":          convert,
	// What the command line does not offer, for tests/real/peer/calls.py.
	"plugin-add":       pluginAdd,
	"plugin-check":     pluginCheck,
	"plugin-del":       pluginDel,
	"plugin-validate":  pluginValidate,
	"plugin-versions":  pluginVersions,
	"cached":           cached,
	"attachments-of":   attachmentsOf,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "driver: no such command")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "libcni: %v\n", err)
		os.Exit(1)
	}
}

func printJSON(value any) error {
	data, err := json.MarshalIndent(value, "", "    ")
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(data, '\n'))
	return err
}
