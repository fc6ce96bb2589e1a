// Command generate writes the parts of the chart that follow from something
// else: the admission configuration from package webhooks, and the schema and
// the table of values from the comments of values.yaml.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/freshbind/freshbind/test/controlplane"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := controlplane.RepositoryDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "charts", "freshbind")
	files, err := generated(dir)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("writing the chart: %w", err)
		}
	}
	return nil
}

// generated returns the generated files of the chart in dir, by name.
func generated(dir string) (map[string][]byte, error) {
	admission, err := admissionTemplate()
	if err != nil {
		return nil, err
	}
	source, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the chart's values: %w", err)
	}
	values, err := parseValues(source)
	if err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	schema, err := values.schema()
	if err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	return map[string][]byte{
		"templates/admission.yaml": admission,
		"values.schema.json":       schema,
		"README.md":                values.readme(),
	}, nil
}
