package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
)

// schemaMark begins a comment line with a piece of JSON schema, in YAML.
const schemaMark = "@schema "

// value is one value of the chart.
type value struct {
	name string
	// doc is what its comment says.
	doc string
	// extra is what its comment adds to its schema.
	extra    map[string]any
	node     *yaml.Node
	children []value
}

// parseValues reads values.yaml with its comments.
func parseValues(source []byte) (value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return value{}, fmt.Errorf("reading YAML: %w", err)
	}
	return makeValue("", "", document.Content[0])
}

func makeValue(name, comment string, node *yaml.Node) (value, error) {
	v := value{name: name, node: node, extra: map[string]any{}}
	// A blank line parts a remark on the file from the comment on the value.
	if i := strings.LastIndex(comment, "\n\n"); i >= 0 {
		comment = comment[i+2:]
	}
	var doc []string
	for line := range strings.Lines(comment) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		extra, isSchema := strings.CutPrefix(line, schemaMark)
		if !isSchema {
			doc = append(doc, line)
			continue
		}
		if err := yaml.Unmarshal([]byte(extra), &v.extra); err != nil {
			return v, fmt.Errorf("%s: %q is not YAML: %w", name, extra, err)
		}
	}
	v.doc = strings.Join(doc, " ")
	if node.Kind != yaml.MappingNode || v.free() {
		return v, nil
	}
	for i := 0; i < len(node.Content); i += 2 {
		key := node.Content[i]
		child, err := makeValue(key.Value, key.HeadComment, node.Content[i+1])
		if err != nil {
			return v, fmt.Errorf("%s: %w", name, err)
		}
		v.children = append(v.children, child)
	}
	return v, nil
}

// free: a map whose keys are the user's.
func (v value) free() bool {
	_, ok := v.extra["additionalProperties"]
	return ok || v.extra["$ref"] != nil
}

// definitions are what several values have in common. An empty name or duration
// is for the value's own comment to explain.
func definitions() map[string]any {
	const label = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
	quantities := map[string]any{"type": "object", "additionalProperties": map[string]any{
		"type": []string{"string", "number"}, "pattern": `^[0-9]+([.][0-9]*)?([eE][0-9]+|[numkMGTPE]|[KMGTPE]i)?$`,
	}}
	return map[string]any{
		"duration": map[string]any{"type": "string", "pattern": `^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
		"label":    map[string]any{"type": "string", "pattern": "^(" + label + ")?$", "maxLength": 63},
		"subdomain": map[string]any{
			"type": "string", "pattern": "^(" + label + "([.]" + label + ")*)?$", "maxLength": 253,
		},
		"key": map[string]any{
			"pattern": "^(" + label + "([.]" + label + ")*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
		},
		"labelValue": map[string]any{"type": "string", "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"},
		"resources": map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{
			"limits": quantities, "requests": quantities,
			"claims": map[string]any{"type": "array", "items": map[string]any{"type": "object"}},
		}},
		// A registry may have a port, and a path that a mirror puts before all names.
		"registry": map[string]any{
			"type": "string", "pattern": `^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*)?$`,
		},
		"podSecurityContext": fieldsOf(reflect.TypeFor[corev1.PodSecurityContext]()),
		"securityContext":    fieldsOf(reflect.TypeFor[corev1.SecurityContext]()),
	}
}

// fieldsOf allows the fields of a type of the API; what is in them is for the API
// server to check.
func fieldsOf(t reflect.Type) map[string]any {
	properties := map[string]any{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		properties[name] = map[string]any{}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// schema is the JSON schema of the values.
func (v value) schema() ([]byte, error) {
	root, err := v.schemaOf()
	if err != nil {
		return nil, err
	}
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["definitions"] = definitions()
	// What charts share has values of others, too.
	if global, ok := root["properties"].(map[string]any)["global"].(map[string]any); ok {
		delete(global, "additionalProperties")
	}
	text, err := json.MarshalIndent(root, "", "  ")
	return append(text, '\n'), err
}

func (v value) schemaOf() (map[string]any, error) {
	types := map[string]string{"!!str": "string", "!!int": "integer", "!!bool": "boolean", "!!seq": "array", "!!map": "object"}
	kind, ok := types[v.node.Tag]
	if !ok {
		return nil, fmt.Errorf("%s: a default of type %s has no schema", v.name, v.node.Tag)
	}
	out := map[string]any{"type": kind}
	if v.doc != "" {
		out["description"] = v.doc
	}
	if kind == "object" && !v.free() {
		properties := map[string]any{}
		for _, c := range v.children {
			of, err := c.schemaOf()
			if err != nil {
				return nil, fmt.Errorf("%s.%w", v.name, err)
			}
			properties[c.name] = of
		}
		out["properties"], out["additionalProperties"] = properties, false
	}
	if kind == "array" && v.extra["items"] == nil {
		return nil, fmt.Errorf("%s: say in a comment what its items are: %sitems…", v.name, schemaMark)
	}
	if v.extra["$ref"] != nil {
		// Beside a reference nothing else counts; a definition says all of it.
		delete(out, "type")
	}
	maps.Copy(out, v.extra)
	return out, nil
}

const readmeHead = `# Freshbind's Helm chart

Installing changes nothing about pools and claims until a namespace or a pool says ` + "`freshbind.dev/enforcement=enforce`" + `;
[docs/install.md](../../docs/install.md) says how to begin, and
[docs/certificates.md](../../docs/certificates.md) where certificates come from.

This table has all values; the chart refuses a name that is not in it. ` + "`make chart` generates it from `values.yaml`" + `.

| value | default | |
|---|---|---|
`

// readme is the chart's README with the table of all values.
func (v value) readme() []byte {
	var out bytes.Buffer
	out.WriteString(readmeHead)
	v.rows(&out, "", "")
	return out.Bytes()
}

// rows writes a line for each leaf. What a group's comment says stands with its
// first leaf.
func (v value) rows(out *bytes.Buffer, path, before string) {
	doc := strings.TrimSpace(before + " " + v.doc)
	if len(v.children) == 0 {
		if choice, ok := v.extra["enum"].([]any); ok {
			doc = strings.TrimSpace(doc + " One of " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(choice)), ", "), "[]") + ".")
		}
		fmt.Fprintf(out, "| `%s` | `%s` | %s |\n", path, v.text(), strings.ReplaceAll(doc, "|", `\|`))
		return
	}
	for _, c := range v.children {
		c.rows(out, strings.TrimPrefix(path+"."+c.name, "."), doc)
		doc = ""
	}
}

// text is the default as JSON writes it.
func (v value) text() string {
	var content any
	if err := v.node.Decode(&content); err != nil {
		return v.node.Value
	}
	text, err := json.Marshal(content)
	if err != nil {
		return v.node.Value
	}
	return string(text)
}
