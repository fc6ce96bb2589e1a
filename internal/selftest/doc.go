// Package selftest asks the API server, in dry runs, for what Freshbind has to
// refuse. The answer proves the whole way: rules and selectors of the webhook
// configurations, the CA that they trust, network, certificate, live reads and
// verdict. Nothing is stored.
package selftest
