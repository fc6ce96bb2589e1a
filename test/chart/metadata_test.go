package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"
)

// What Artifact Hub shows of the chart leads somewhere.
func TestTheChartsMetadata(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository(t), "charts", "freshbind", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var chart struct {
		Icon        string            `json:"icon"`
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.Unmarshal(content, &chart); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"category", "license", "links", "prerelease"} {
		if chart.Annotations["artifacthub.io/"+key] == "" {
			t.Errorf("annotation artifacthub.io/%s is missing", key)
		}
	}
	var links []struct{ Name, URL string }
	if err := yaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/links"]), &links); err != nil || len(links) == 0 {
		t.Errorf("links %v: %v", links, err)
	}
	files := regexp.MustCompile(`freshbind/freshbind/(?:blob/)?main/([^\s"]+)`).FindAllStringSubmatch(string(content), -1)
	if len(files) < 3 || chart.Icon == "" {
		t.Errorf("icon %q, files %v", chart.Icon, files)
	}
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(repository(t), f[1])); err != nil {
			t.Errorf("the chart refers to %s: %v", f[1], err)
		}
	}
}
