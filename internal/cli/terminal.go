package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Escape replaces control characters other than line feeds and tabs, which a terminal obeys: much
// of what is printed was written by tenants. printers.EscapeTerminal knows only two of them.
func Escape(text string) string {
	return escape(text, func(r rune) bool { return r != '\n' && r != '\t' })
}

// OneLine is Escape for what has to stay within its line: with a line feed it would look like more
// lines of ours.
func OneLine(text string) string { return escape(text, func(rune) bool { return true }) }

func escape(text string, which func(rune) bool) string {
	bad := func(r rune) bool { return unicode.IsControl(r) && which(r) }
	// A terminal that does not read UTF-8 obeys single bytes, too.
	text = strings.ToValidUTF8(text, string(unicode.ReplacementChar))
	if strings.IndexFunc(text, bad) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !bad(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r <= '\x7f':
			b.WriteString("^" + string(r^'@'))
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// escaping is a writer for people.
type escaping struct{ out io.Writer }

// Escaping returns a writer that escapes what is written to it. Each call is given whole
// characters.
func Escaping(out io.Writer) io.Writer { return escaping{out} }

func (e escaping) Write(p []byte) (int, error) {
	if _, err := io.WriteString(e.out, Escape(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Raw is what an Escaping writer writes to, for what programs read and for text that is escaped
// already, with colours in it; any other writer is that itself.
func Raw(out io.Writer) io.Writer {
	if e, is := out.(escaping); is {
		return e.out
	}
	return out
}
