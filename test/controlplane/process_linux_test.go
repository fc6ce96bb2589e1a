package controlplane

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// parentVariable makes this test program, run once more, a parent to be killed.
const parentVariable = "FRESHBIND_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentVariable); dir != "" {
		os.Exit(beParent(dir))
	}
	os.Exit(m.Run())
}

// beParent starts a child, prints its process id and waits to be killed.
func beParent(dir string) int {
	child, err := startProcess("sleep", "/bin/sleep", filepath.Join(dir, "sleep.log"), nil, "600")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(child.PID())
	<-child.Done()
	return 1
}

func TestChildDiesWithKilledParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("parent printed %q", line)
	}
	if !alive(child) {
		t.Fatalf("child %d does not run", child)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// It ends with the signal that was sent.
	_ = parent.Wait()
	eventually(t, "end of the child", func() (bool, error) { return !alive(child), nil })
}

// alive says whether a process runs. One that nobody has waited for does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The state follows the command's name, which is in parentheses.
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}
