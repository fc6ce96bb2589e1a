package alerts

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// registered are the labels of all metrics that the program registers, and of those
// that the API server tells of webhooks. A test beside the program keeps the list.
func registered(t *testing.T) map[string][]string {
	t.Helper()
	list, err := os.ReadFile("metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{}
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		known[fields[0]] = fields[1:]
	}
	return known
}

// alertNames are all alerts of the chart.
func alertNames(t *testing.T) []string {
	t.Helper()
	list, err := os.ReadFile("../../charts/freshbind/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^- alert: (\S+)$`).FindAllStringSubmatch(string(list), -1) {
		out = append(out, m[1])
	}
	return out
}
