package auditlog

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
)

// BenchmarkRead judges a log of as many events as it is run times: pools under a steady load of claims that come, get a
// member and go, with a template update now and then. Peak memory is the process's own, with that of the generator:
//
//	go test -run '^$' -bench BenchmarkRead -benchtime 1000000x ./internal/auditlog
func BenchmarkRead(b *testing.B) {
	file, err := os.CreateTemp(b.TempDir(), "audit-*.log")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	bytes := generate(b, file, b.N)
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		b.Fatal(err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // as the command does
	runtime.GC()
	b.SetBytes(bytes / int64(b.N))
	b.ReportAllocs()
	before := usage(b)
	b.ResetTimer()
	l := New()
	if err := l.Read("audit.log", file); err != nil {
		b.Fatal(err)
	}
	h, _, err := l.History("", checker.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := h.Judge()
	b.StopTimer()
	after := usage(b)
	b.ReportMetric((cpu(after) - cpu(before)).Seconds(), "cpu-s")
	b.ReportMetric(float64(after.Maxrss)/(1<<10), "MiB-peak")
	b.ReportMetric(float64(r.Namespace(ns).Warm), "binds")
	b.ReportMetric(float64(r.Bad()), "bad")
}

// Of a million events 512 MiB may be kept, with what their judgement takes, which the benchmark shows. This is the part that the
// log itself is.
func TestALogTakesLittleMemory(t *testing.T) {
	const n, most = 20_000, 300
	file, err := os.CreateTemp(t.TempDir(), "audit-*.log")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	generate(t, file, n)
	l := New()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if err := l.Read("audit.log", file); err != nil {
		t.Fatal(err)
	}
	kept := (int64(heap()) - int64(before)) / n
	t.Logf("%d bytes an event", kept)
	if kept > most {
		t.Errorf("%d bytes are kept of an event, want at most %d", kept, most)
	}
	runtime.KeepAlive(l)
}

func usage(b *testing.B) syscall.Rusage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u
}

// cpu is the time that the process has computed for: what is measured beside other programs.
func cpu(u syscall.Rusage) time.Duration { return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }

// noise is what makes an event as large as a real one: about 4 kB.
var noise = strings.Repeat("x", 1500)

// scheduled gives the Pod a spec like no other's: a node, and the volume of its token, whose name is random.
func (c *cast) scheduled(i int) {
	token := fmt.Sprintf("kube-api-access-%05x", i)
	c.pod = c.mod(builders.PodFrom(c.pod).Set(fmt.Sprintf("node-%d", i%100), "spec", "nodeName").
		Set([]any{map[string]any{"name": token, "projected": map[string]any{"defaultMode": int64(420), "sources": []any{
			map[string]any{"serviceAccountToken": map[string]any{"expirationSeconds": int64(3607), "path": "token"}}}}}}, "spec", "volumes").
		Set("10.0.0.1", "status", "podIP"))
}

// generate writes n events. Each claim takes twelve.
func generate(b testing.TB, out io.Writer, n int) (written int64) {
	x := &logBuilder{t: b, rv: 100, now: begin, user: pool}
	c := &cast{logBuilder: x}
	c.template = x.add(builders.MakeTemplate(ns, "python"))
	c.pool = x.add(builders.MakePool(ns, "python").Strategy("Recreate"))
	events := 0
	flush := func() {
		for _, line := range x.lines {
			if events == n {
				break
			}
			events++
			k, err := fmt.Fprintln(out, strings.Replace(line, `"auditID"`, `"requestObject":{"x":"`+noise+`"},"auditID"`, 1))
			if err != nil {
				b.Fatal(err)
			}
			written += int64(k)
		}
		x.lines = x.lines[:0]
	}
	for i := 0; events < n; i++ {
		if i%1000 == 999 {
			c.update(fmt.Sprintf("sandbox:v%d", i))
		}
		c.now = c.now.Add(-8 * time.Second)
		c.birth(fmt.Sprintf("m%d", i))
		c.scheduled(i)
		c.serve(fmt.Sprintf("c%d", i))
		x.user = "alice"
		c.del(c.claim)
		x.user = "system:serviceaccount:kube-system:generic-garbage-collector"
		c.del(c.member)
		x.user = pool
		c.write("delete", 200, builders.PodFrom(c.pod).Deleting(c.now))
		x.rv++
		c.mod(builders.PoolFrom(c.pool))
		flush()
	}
	return written
}
