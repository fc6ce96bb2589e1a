package settings_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

// Production namespaces enforce, whatever their own label says.
func ExampleFloors() {
	prod, err := settings.NewFloor(&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}, true, freshness.RollingUpdate)
	if err != nil {
		fmt.Println(err)
		return
	}
	floors := settings.Floors{prod}
	for _, tier := range []string{"prod", "test"} {
		labels := map[string]string{"tier": tier, "freshbind.dev/enforcement": "audit"}
		fmt.Printf("%s: enforces=%t least strategy=%q\n", tier, floors.Enforces(labels), floors.Strategy(labels))
	}
	// Output:
	// prod: enforces=true least strategy="RollingUpdate"
	// test: enforces=false least strategy=""
}
