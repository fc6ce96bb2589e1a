package app

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// document is one object of a file and where in the file it stands.
type document struct {
	position string // document 2, or document 2, item 1 for the items of a List
	object   *unstructured.Unstructured
}

// decodeDocuments reads YAML documents, of which JSON is a part, and takes Lists apart. Documents with nothing but comments do not
// count, and have no number.
func decodeDocuments(r io.Reader) ([]document, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(r))
	var out []document
	for number := 1; ; {
		data, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		position := fmt.Sprintf("document %d", number)
		content, err := decodeDocument(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", position, err)
		}
		if content == nil {
			continue
		}
		number++
		items, err := takeApart(position, content)
		if err != nil {
			return nil, err
		}
		out = append(out, items...)
	}
}

// decodeDocument returns nil for a document that is empty. A key that is given twice is an error: which one counts depends on the reader.
func decodeDocument(data []byte) (map[string]any, error) {
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("is not YAML: %w", err)
	}
	var content any
	if err := json.Unmarshal(asJSON, &content); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if content == nil {
		return nil, nil
	}
	object, ok := content.(map[string]any)
	if !ok {
		return nil, errors.New("must be an object with apiVersion, kind, metadata and spec")
	}
	return object, nil
}

func takeApart(position string, content map[string]any) ([]document, error) {
	object := &unstructured.Unstructured{Object: content}
	if !strings.HasSuffix(object.GetKind(), "List") {
		return []document{{position, object}}, nil
	}
	items, ok := content["items"].([]any)
	if !ok {
		return nil, fmt.Errorf("%s: items: required in a %s, and must be a list", position, object.GetKind())
	}
	out := make([]document, 0, len(items))
	for i, item := range items {
		itemPosition := fmt.Sprintf("%s, item %d", position, i+1)
		itemObject, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: must be an object with apiVersion, kind, metadata and spec", itemPosition)
		}
		out = append(out, document{itemPosition, &unstructured.Unstructured{Object: itemObject}})
	}
	return out, nil
}

// documentFiles are what -f names.
type documentFiles []string

// addFlag adds -f.
func (f *documentFiles) addFlag(flags *pflag.FlagSet) {
	flags.StringArrayVarP((*[]string)(f), "filename", "f", nil, "File with YAML or JSON documents, - for standard input. Can be given several times.")
}

// validateFiles says what is wrong with a command's arguments, which are files and nothing else.
func validateFiles(args []string, f documentFiles) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q: name files with -f", args[0])
	case len(f) == 0:
		return errors.New("-f is required: name a file, or - for standard input")
	case slices.Contains(f, ""):
		return errors.New("-f: the name of the file is empty")
	}
	first := slices.Index(f, "-")
	if first >= 0 && slices.Contains(f[first+1:], "-") {
		return errors.New("-f -: standard input can be read only once")
	}
	return nil
}

// readDocuments reads the documents of one file. Their positions, and errors, name it by source.
func readDocuments(stdin io.Reader, file string) (source string, documents []document, err error) {
	source = file
	if file == "-" {
		source = "standard input"
	}
	data, err := readInput(stdin, file)
	if err != nil {
		return source, nil, fmt.Errorf("read %s: %w", source, err)
	}
	if documents, err = decodeDocuments(bytes.NewReader(data)); err != nil {
		return source, nil, fmt.Errorf("%s: %w", source, err)
	}
	for i := range documents {
		documents[i].position = source + ": " + documents[i].position
	}
	return source, documents, nil
}

func readInput(stdin io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return nil, errors.New("is a directory: name the files in it")
	}
	return os.ReadFile(file)
}
