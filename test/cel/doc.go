// Package cel tests what the API server is told, in its own language and by its
// own library, beside what Freshbind decides in Go. It is a module of its own:
// that library is large, and nothing that is shipped needs it.
package cel
