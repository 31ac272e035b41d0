// Package resolve keeps the addresses of names that are members up to date.
//
// [Names] decides when to ask for which name, [Resolver] asks, and hands every
// answer to whoever decides what it means. Nobody waits for an answer.
package resolve
