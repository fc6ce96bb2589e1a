// What recognises licenses, apart from what is shipped.
module github.com/freshbind/freshbind/hack/licenses

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/google/licensecheck v0.3.1
)
