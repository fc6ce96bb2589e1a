package controlplane

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// The kernel sends Pdeathsig when the *thread* that forked is gone, not when
// its process is. So all children are forked by one goroutine that never gives
// its thread back: the thread lives exactly as long as the process.
// https://github.com/golang/go/issues/27505
var forker = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for fork := range work {
			fork()
		}
	}()
	return work
})

// startTied starts cmd so that it dies with this process, however that ends.
// Its own process group keeps a terminal's Ctrl-C away from it: the order in
// which things stop is ours.
func startTied(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	forker() <- func() { result <- cmd.Start() }
	return <-result
}
