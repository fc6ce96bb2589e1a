// Command freshbind makes claims on warm pools bind to fresh sandboxes only.
package main

import (
	"os"

	"github.com/freshbind/freshbind/cmd/freshbind/app"
)

func main() {
	os.Exit(app.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
