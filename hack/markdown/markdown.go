// Package markdown writes what programs found out into pages of the documentation.
package markdown

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
)

// UpdateDocs is the variable that asks for it.
const UpdateDocs = "FRESHBIND_UPDATE_DOCS"

// Table is a table with columns aligned for people.
func Table(head []string, rows [][]string) string {
	width := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	line := func(cells []string, pad string) {
		for i, cell := range cells {
			out.WriteString("| " + cell + strings.Repeat(pad, width[i]-utf8.RuneCountInString(cell)) + " ")
		}
		out.WriteString("|\n")
	}
	line(head, " ")
	line(make([]string, len(head)), "-")
	for _, row := range rows {
		line(row, " ")
	}
	return out.String()
}

// Changed is the text of a page as change makes it.
func Changed(path string, change func(text string) (string, error)) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read page: %w", err)
	}
	changed, err := change(string(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return changed, nil
}

// Change writes a page as change makes it.
func Change(path string, change func(text string) (string, error)) error {
	changed, err := Changed(path, change)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}
