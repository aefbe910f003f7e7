// Copyright: (c) 2026, the podwire.cni authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// A plugin that records how it is called and answers as it is told.
//
// PEER_RECORD names the directory of the records: each call makes a file, the next number and what it got as JSON. PEER_SCRIPT
// names a JSON file, {"PLUGIN/COMMAND": [answer, answer, ...]}: the n-th call of that plugin with that command gets the n-th
// answer, later calls the last one.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"
)

type answer struct {
	// Bytes are base64 in JSON.
	Stdout []byte `json:"stdout"`
	Stderr []byte `json:"stderr"`
	// Stdout, this many times.
	Repeat int `json:"repeat"`
	Exit   int `json:"exit"`
	Signal int `json:"signal"`
	// Answer with the prevResult that came in.
	PassThrough bool `json:"passthrough"`
	// Do not read the configuration.
	Deaf bool `json:"deaf"`
}

type record struct {
	Plugin  string   `json:"plugin"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Dir     string   `json:"dir"`
	Env     [][]byte `json:"env"`
	Stdin   []byte   `json:"stdin"`
}

func main() {
	plugin, command := filepath.Base(os.Args[0]), os.Getenv("CNI_COMMAND")
	told := nextAnswer(plugin, command)
	var stdin []byte
	if !told.Deaf {
		stdin = must(io.ReadAll(os.Stdin))
	}
	write(record{plugin, command, os.Args, must(os.Getwd()), sortedEnv(), stdin})
	os.Stderr.Write(told.Stderr)
	os.Stdout.Write(output(told, stdin))
	if told.Signal != 0 {
		syscall.Kill(os.Getpid(), syscall.Signal(told.Signal))
		// The signal may take a moment; a program that waits for nothing is ended by Go before.
		time.Sleep(time.Minute)
	}
	os.Exit(told.Exit)
}

func output(told answer, stdin []byte) []byte {
	if told.PassThrough {
		var conf struct {
			PrevResult json.RawMessage `json:"prevResult"`
		}
		json.Unmarshal(stdin, &conf)
		return conf.PrevResult
	}
	return bytes.Repeat(told.Stdout, max(told.Repeat, 1))
}

func nextAnswer(plugin, command string) answer {
	script := map[string][]answer{}
	if err := json.Unmarshal(must(os.ReadFile(os.Getenv("PEER_SCRIPT"))), &script); err != nil {
		die(err)
	}
	answers := script[plugin+"/"+command]
	if len(answers) == 0 {
		return answer{}
	}
	called := len(must(filepath.Glob(filepath.Join(os.Getenv("PEER_RECORD"), "*."+plugin+"."+command))))
	return answers[min(called, len(answers)-1)]
}

func write(made record) {
	directory := os.Getenv("PEER_RECORD")
	number := len(must(os.ReadDir(directory)))
	name := fmt.Sprintf("%04d.%s.%s", number, made.Plugin, strings.ReplaceAll(made.Command, "/", "_"))
	data := must(json.Marshal(made))
	if err := os.WriteFile(filepath.Join(directory, name), data, 0o600); err != nil {
		die(err)
	}
}

func sortedEnv() [][]byte {
	names := os.Environ()
	sort.Strings(names)
	var env [][]byte
	for _, name := range names {
		env = append(env, []byte(name))
	}
	return env
}

func must[T any](value T, err error) T {
	if err != nil {
		die(err)
	}
	return value
}

func die(err error) {
	fmt.Fprintln(os.Stderr, "recorder:", err)
	os.Exit(99)
}
