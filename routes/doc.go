// Package routes says where a sandbox can be reached, from a view of Sandboxes
// and Pods that can be late, repeated or out of order.
//
// What a Table guarantees: no resurrection, ever; staleness at most MaxAge.
//
//   - A write takes effect only in the order of the object's resourceVersions.
//     Deletes obey it too, and leave a fence behind that refuses what is older.
//   - Fences are bounded in number and never expire. When one is dropped, a
//     floor rises to its version: an unknown object at or below the floor is
//     decided by a live read, not by the event.
//   - The watch of this process is the authority. What others say is a hint,
//     which may take a route out of service and never adds one.
//   - A route is served only while the table can prove that its view of the
//     cluster is younger than MaxAge.
//   - An address belongs to one Pod. When another Pod has it, every older route
//     to it is gone.
//
// The package needs nothing but the standard library.
package routes
