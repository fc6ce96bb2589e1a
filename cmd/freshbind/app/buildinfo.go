package app

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// RegisterBuildInfo registers freshbind_build_info with reg. It panics if that
// is registered already. component is the process: an alert has to tell the
// manager from what serves routes beside it.
func RegisterBuildInfo(reg prometheus.Registerer, component, version string) {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "freshbind_build_info",
		Help: "Always 1; its labels say what runs.",
	}, []string{"component", "version", "goversion", "goos", "goarch"})
	info.WithLabelValues(component, version, runtime.Version(), runtime.GOOS, runtime.GOARCH).Set(1)
	reg.MustRegister(info)
}
