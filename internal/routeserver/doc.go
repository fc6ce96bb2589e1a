// Package routeserver tells gateways where a sandbox is: by a lookup, by a
// stream of changes, and by checks in the conventions of nginx, Traefik and
// Envoy. It only reads: nothing that anybody sends changes a route.
package routeserver
