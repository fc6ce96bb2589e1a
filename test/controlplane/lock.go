package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// lockPoll is how often a lock that somebody else holds is tried again.
const lockPoll = 100 * time.Millisecond

// fileLock is an advisory lock that the kernel drops when its holder dies, so
// that a killed test run never blocks the next one.
type fileLock struct {
	file *os.File
}

// tryLock takes the lock on path, or returns nil when somebody else holds it.
func tryLock(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, file.Close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return &fileLock{file: file}, nil
}

// waitLock takes the lock on path, calling busy once when it has to wait.
func waitLock(ctx context.Context, path string, busy func()) (*fileLock, error) {
	var lock *fileLock
	notified := false
	err := wait.PollUntilContextCancel(ctx, lockPoll, true, func(context.Context) (bool, error) {
		var err error
		lock, err = tryLock(path)
		if err == nil && lock == nil && !notified {
			busy()
			notified = true
		}
		return lock != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("wait for lock %s: %w", path, err)
	}
	return lock, nil
}

// unlock is safe on a nil lock. Closing the file is what releases it.
func (l *fileLock) unlock() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
