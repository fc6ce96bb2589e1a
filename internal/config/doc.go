// Package config is Freshbind's configuration file: its types, its defaults,
// which the flags take over, and how it is read. A file is read strictly: what
// is misspelt, given twice or out of range is an error that names the field.
package config
