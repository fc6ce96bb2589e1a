package config

import (
	"bufio"
	"bytes"
	gojson "encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// File is a configuration and the values that a file really has.
type File struct {
	Configuration
	values map[string]any
}

// IsSet reports whether the file has a value at a path such as revisions.limit.
// What is empty is not set.
func (f *File) IsSet(path string) bool {
	var at any = f.values
	for key := range strings.SplitSeq(path, ".") {
		object, ok := at.(map[string]any)
		if !ok {
			return false
		}
		at = object[key]
	}
	switch at := at.(type) {
	case nil:
		return false
	case string:
		return at != ""
	case []any:
		return len(at) > 0
	}
	return true
}

// Load reads and validates the file at path.
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	f, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Parse reads and validates YAML, of which JSON is a part.
func Parse(data []byte) (*File, error) {
	document, err := only(data)
	if err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, fmt.Errorf("is not YAML, or says something twice: %w", err)
	}
	f := &File{Configuration: baseDefaults()}
	if err := gojson.Unmarshal(asJSON, &f.values); err != nil || f.values == nil {
		return nil, errors.New("has to be an object with apiVersion: " + APIVersion + " and kind: " + Kind)
	}
	if err := f.checkKind(); err != nil {
		return nil, err
	}
	strict, err := json.UnmarshalStrict(asJSON, &f.Configuration)
	if err != nil {
		return nil, describe(err)
	}
	if len(strict) > 0 {
		return nil, unknown(strict)
	}
	f.complete()
	if err := f.Validate(); err != nil {
		return nil, err
	}
	return f, nil
}

// only returns the one document of a file.
func only(data []byte) ([]byte, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var found []byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading YAML: %w", err)
		}
		var content any
		if yaml.Unmarshal(document, &content) == nil && content == nil {
			continue
		}
		if found != nil {
			return nil, errors.New("has more than one document: keep one")
		}
		found = document
	}
}

func (f *File) checkKind() error {
	for _, want := range []struct{ key, value string }{{"apiVersion", APIVersion}, {"kind", Kind}} {
		if f.values[want.key] != want.value {
			return fmt.Errorf("%s: is %s: this program reads %s", want.key, show(f.values[want.key]), want.value)
		}
	}
	return nil
}

func show(value any) string {
	if value == nil {
		return "missing"
	}
	return fmt.Sprintf("%q", fmt.Sprint(value))
}

// describe says which field has a value of the wrong type, and what type it
// takes.
func describe(err error) error {
	var wrong *gojson.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("decoding: %w", err)
	}
	return fmt.Errorf("%s: write %s instead of %s", wrong.Field, words(wrong.Type.Kind()), wrong.Value)
}
