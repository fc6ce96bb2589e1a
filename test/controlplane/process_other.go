//go:build !linux

package controlplane

import (
	"os/exec"
)

// startTied starts cmd in our own process group, so that a terminal's Ctrl-C
// reaches it as well. Only Linux can tie a child to a parent that is killed.
func startTied(cmd *exec.Cmd) error {
	return cmd.Start()
}
