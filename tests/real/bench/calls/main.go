// Copyright: (c) 2026, the podwire.cni authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// The other side of the comparison of plugin calls: prints the microseconds that each call of Go's libcni took.
//
//	calls VERB TURNS PLUGIN_DIRECTORY CACHE_DIRECTORY CONFLIST
//
// VERB is add or del. As in calls.py, one process makes all calls, of the plugins of one network for one container.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/containernetworking/cni/libcni"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	verb := os.Args[1]
	turns, err := strconv.Atoi(os.Args[2])
	fail(err)
	cni := libcni.NewCNIConfigWithCacheDir([]string{os.Args[3]}, os.Args[4], nil)
	list, err := libcni.ConfListFromFile(os.Args[5])
	fail(err)
	rt := &libcni.RuntimeConf{ContainerID: "bench", NetNS: "/run/netns/bench", IfName: "eth0"}
	for turn := 0; turn < turns; turn++ {
		// As cni_attach runs it, with a deadline.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		begun := time.Now()
		if verb == "add" {
			_, err = cni.AddNetworkList(ctx, list, rt)
		} else {
			err = cni.DelNetworkList(ctx, list, rt)
		}
		fmt.Println(time.Since(begun).Microseconds())
		cancel()
		fail(err)
	}
}
