;; Sets the header `x-tenant` of every request to a subgraph. A compiler writes all of this for you; it stands here to show
;; that there is nothing behind it.
(component
  (import "ogive:hooks/exchange@1.0.0" (instance $exchange
    (export "set-header" (func (param "name" string) (param "value" string)))))

  ;; The memory that texts are in.
  (core module $memory
    (memory (export "memory") 1)
    (data (i32.const 16) "x-tenantgold"))
  (core instance $memory (instantiate $memory))

  (core func $set_header (canon lower (func $exchange "set-header") (memory (core memory $memory "memory"))))

  (core module $code
    (import "exchange" "set-header" (func $set_header (param i32 i32 i32 i32)))
    (func (export "handle") (result i32)
      (call $set_header (i32.const 16) (i32.const 8) (i32.const 24) (i32.const 4))
      ;; Where the result stands: a zero, for no error.
      (i32.const 0)))
  (core instance $code (instantiate $code
    (with "exchange" (instance (export "set-header" (func $set_header))))))

  (func $handle (result (result (error string)))
    (canon lift (core func $code "handle") (memory (core memory $memory "memory"))))
  (instance $hook (export "handle" (func $handle)))
  (export "ogive:hooks/subgraph-request@1.0.0" (instance $hook)))
