package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// APIVersion is that of what commands print for programs.
const APIVersion = "cli.freshbind.dev/v1alpha1"

// Document makes an object with apiVersion and kind of what is printed for
// programs.
func Document(kind string, v any) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode output: %w", err)
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("encode output: %w", err)
	}
	content["apiVersion"], content["kind"] = APIVersion, kind
	return &unstructured.Unstructured{Object: content}, nil
}

// List makes one object of several, as kubectl does.
func List(items []any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}}
}

// templated are the formats that take an argument, for help and completion.
var templated = []string{"jsonpath=", "go-template=", customColumns}

const customColumns = "custom-columns="

// encoder writes documents in a format that programs read; nil for a format that
// is none of those.
func encoder(format string, noHeaders bool) (func(io.Writer, *unstructured.Unstructured) error, error) {
	switch {
	case format == JSON:
		return func(out io.Writer, doc *unstructured.Unstructured) error {
			raw, err := IndentedJSON(doc.Object)
			return writeAll(out, raw, err)
		}, nil
	case format == YAML:
		return func(out io.Writer, doc *unstructured.Unstructured) error {
			raw, err := yaml.Marshal(doc.Object)
			return writeAll(out, raw, err)
		}, nil
	case strings.HasPrefix(format, customColumns):
		return columnsOf(strings.TrimPrefix(format, customColumns), noHeaders)
	}
	printer, err := genericclioptions.NewKubeTemplatePrintFlags().ToPrinter(format)
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("-o %q: %w", format, err)
	}
	return func(out io.Writer, doc *unstructured.Unstructured) error {
		if err := printer.PrintObj(doc, out); err != nil {
			return fmt.Errorf("-o %q: %w", format, err)
		}
		return nil
	}, nil
}

func writeAll(out io.Writer, raw []byte, err error) error {
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	if _, err := out.Write(raw); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// columnsOf reads HEADER:.path,… as kubectl does.
func columnsOf(spec string, noHeaders bool) (func(io.Writer, *unstructured.Unstructured) error, error) {
	var headers []string
	var paths []*jsonpath.JSONPath
	for column := range strings.SplitSeq(spec, ",") {
		header, path, ok := strings.Cut(column, ":")
		if !ok || header == "" || path == "" {
			return nil, fmt.Errorf("-o %q: a column is HEADER:.path, such as POOL:.name,STALE:.staleReplicas", customColumns+spec)
		}
		path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
		p := jsonpath.New(header).AllowMissingKeys(true)
		if err := p.Parse("{." + strings.TrimPrefix(path, ".") + "}"); err != nil {
			return nil, fmt.Errorf("-o %q: %w", customColumns+spec, err)
		}
		headers, paths = append(headers, header), append(paths, p)
	}
	return func(out io.Writer, doc *unstructured.Unstructured) error {
		w := printers.GetNewTabWriter(out)
		lines := []string{}
		if !noHeaders {
			lines = append(lines, strings.Join(headers, "\t"))
		}
		for _, row := range rowsOf(doc) {
			line, err := cellsOf(row, paths)
			if err != nil {
				return err
			}
			lines = append(lines, line)
		}
		_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
		if err := errors.Join(err, w.Flush()); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
		return nil
	}, nil
}

// rowsOf are the items of a list, or the object itself.
func rowsOf(doc *unstructured.Unstructured) []any {
	if items, ok := doc.Object["items"].([]any); ok {
		return items
	}
	return []any{doc.Object}
}

func cellsOf(row any, paths []*jsonpath.JSONPath) (string, error) {
	cells := make([]string, len(paths))
	for i, p := range paths {
		found, err := p.FindResults(row)
		if err != nil {
			return "", fmt.Errorf("find a column: %w", err)
		}
		var values []string
		for _, results := range found {
			for _, v := range results {
				values = append(values, OneLine(fmt.Sprint(v.Interface())))
			}
		}
		if cells[i] = strings.Join(values, ","); len(values) == 0 {
			cells[i] = "<none>"
		}
	}
	return strings.Join(cells, "\t"), nil
}
