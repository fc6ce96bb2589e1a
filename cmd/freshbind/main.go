// Command freshbind gives claims on warm pools fresh sandboxes only.
package main

import (
	"os"

	"github.com/freshbind/freshbind/cmd/freshbind/app"
)

func main() {
	os.Exit(app.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
