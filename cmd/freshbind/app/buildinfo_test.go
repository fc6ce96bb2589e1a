package app

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestBuildInfo(t *testing.T) {
	reg := prometheus.NewRegistry()
	RegisterBuildInfo(reg, "manager", "v1.2.3")
	want := fmt.Sprintf("# HELP freshbind_build_info Always 1; its labels say what runs.\n# TYPE freshbind_build_info gauge\n"+
		"freshbind_build_info{component=\"manager\",goarch=%q,goos=%q,goversion=%q,version=\"v1.2.3\"} 1\n", runtime.GOARCH, runtime.GOOS, runtime.Version())
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
