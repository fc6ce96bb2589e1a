package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Ports are taken from below the range that Linux hands out for outgoing
// connections (32768 and up by default): a port there could be taken away
// between two starts of the same API server.
const (
	firstPort = 20000
	lastPort  = 32000
	portTries = 200
)

// port is a loopback port reserved for this process, across all processes that
// use this package, until it is released.
type port struct {
	number int
	lock   *fileLock
}

// address is the port in host:port form.
func (p port) address() string {
	return net.JoinHostPort(loopback, strconv.Itoa(p.number))
}

// reservePort finds a loopback port that nobody listens on and that no other
// control plane on this machine has reserved.
func reservePort() (port, error) {
	dir, err := cacheDir("ports")
	if err != nil {
		return port{}, err
	}
	var last error
	for range portTries {
		number := firstPort + rand.IntN(lastPort-firstPort)
		lock, err := tryLock(filepath.Join(dir, strconv.Itoa(number)))
		if err != nil {
			return port{}, fmt.Errorf("reserve port: %w", err)
		}
		if lock == nil {
			continue
		}
		candidate := port{number: number, lock: lock}
		listener, err := net.Listen("tcp", candidate.address())
		if err == nil {
			return candidate, listener.Close()
		}
		last = errors.Join(err, lock.unlock())
	}
	return port{}, fmt.Errorf("no free port between %d and %d on %s after %d tries: %w",
		firstPort, lastPort, loopback, portTries, last)
}

// cacheDir is a folder below the user's cache that belongs to this package.
func cacheDir(elements ...string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder (set XDG_CACHE_HOME or HOME): %w", err)
	}
	dir := filepath.Join(append([]string{base, "freshbind"}, elements...)...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make cache folder: %w", err)
	}
	return dir, nil
}
