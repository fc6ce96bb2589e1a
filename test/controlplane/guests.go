package controlplane

import "strconv"

// StartProcess runs a program that belongs to no cluster. Like those that do,
// it dies with this process.
func StartProcess(name, path, logPath string, args ...string) (*Process, error) {
	return startProcess(name, path, logPath, nil, args...)
}

// ReservePort finds a free loopback port that no other user of this package
// gets until release is called.
func ReservePort() (number string, release func(), err error) {
	p, err := reservePort()
	if err != nil {
		return "", nil, err
	}
	return strconv.Itoa(p.number), func() { _ = p.lock.unlock() }, nil
}
