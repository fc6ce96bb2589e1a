// Package liveread reads single objects as they are stored now: GETs without a
// resourceVersion, which the API server answers from etcd (about 1 ms, flat
// under load; consistent LISTs take up to 100 ms when they come close together).
//
// Concurrent reads of one object are coalesced without losing linearizability:
// a caller may join only a read that starts after the caller arrived. So per
// object at most one read is in flight and one is pending, and everybody who
// arrives while one is in flight shares the next.
package liveread
