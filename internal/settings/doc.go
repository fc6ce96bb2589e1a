// Package settings has what people can say to Freshbind: the keys, how their
// values are read, and which mode and strategy hold then. The keys of what Freshbind
// answers stand beside them. It decides on values only.
package settings
