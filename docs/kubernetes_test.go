package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// What a Pod can have, Freshbind knows from the API types that it is built with.
func TestThePageNamesTheKubernetesWhoseFieldsAreKnown(t *testing.T) {
	module, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("kruise.md")
	if err != nil {
		t.Fatal(err)
	}
	api := regexp.MustCompile(`k8s\.io/api v0\.(\d+)\.`).FindSubmatch(module)
	if api == nil {
		t.Fatal("go.mod does not require k8s.io/api")
	}
	if want := "Kubernetes 1." + string(api[1]) + "."; !strings.Contains(strings.Join(strings.Fields(string(page)), " "), "knows the fields of "+want) {
		t.Errorf("kruise.md does not say that Freshbind knows the fields of %s", want)
	}
}
