package app

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// registerBuildInfo registers freshbind_build_info with reg. It panics if that
// is registered already.
func registerBuildInfo(reg prometheus.Registerer, version string) {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "freshbind_build_info",
		Help: "Always 1; its labels say what runs.",
	}, []string{"version", "goversion", "goos", "goarch"})
	info.WithLabelValues(version, runtime.Version(), runtime.GOOS, runtime.GOARCH).Set(1)
	reg.MustRegister(info)
}
