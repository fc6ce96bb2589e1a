package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/json"
)

// words says what a kind of value looks like in a file.
func words(k reflect.Kind) string {
	switch k {
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "an object"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	}
	return "a string"
}

// unknown names each wrong key with the key that was probably meant.
func unknown(strict []error) error {
	known := keysOf("", reflect.TypeFor[Configuration]())
	var errs []error
	for _, err := range strict {
		var at json.FieldError
		if !errors.As(err, &at) {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, fmt.Errorf("%s: is not a key%s", at.FieldPath(), hint(at.FieldPath(), known)))
	}
	return errors.Join(errs...)
}

var index = regexp.MustCompile(`\[\d+\]`)

// hint looks among the keys beside the wrong one first, then for the same key in
// another place.
func hint(path string, known []string) string {
	plain := index.ReplaceAllString(path, "")
	parent, key := split(plain)
	var beside, elsewhere []string
	best := max(2, len(key)/3) + 1
	for _, k := range known {
		p, name := split(k)
		switch {
		case p == parent:
			d := distance(strings.ToLower(key), strings.ToLower(name))
			if d < best {
				best, beside = d, nil
			}
			if d == best {
				beside = append(beside, name)
			}
		case strings.EqualFold(name, key):
			elsewhere = append(elsewhere, k)
		}
	}
	if near := slices.Concat(beside, elsewhere); len(near) > 0 {
		return ": did you mean " + strings.Join(near, " or ") + "?"
	}
	var all []string
	for _, k := range known {
		if p, name := split(k); p == parent {
			all = append(all, name)
		}
	}
	return ": there is " + strings.Join(all, ", ")
}

func split(path string) (parent, key string) {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// keysOf lists the paths of all keys, without indexes of lists.
func keysOf(prefix string, t reflect.Type) []string {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[Duration]() {
		return nil
	}
	var out []string
	for f := range fields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			out = append(out, keysOf(prefix, f.Type)...)
			continue
		}
		path := strings.TrimPrefix(prefix+"."+name, ".")
		out = append(append(out, path), keysOf(path, f.Type)...)
	}
	return out
}

func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return slices.Values(reflect.VisibleFields(t))
}

// distance is the number of letters to insert, leave out or replace to make b of
// a (Levenshtein's).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
