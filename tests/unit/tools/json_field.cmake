# cmake -DJSON=text -P json_field.cmake NAME...: fails unless the text is JSON with that member.
set(path "")
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 4 ${last})
  list(APPEND path "${CMAKE_ARGV${i}}")
endforeach()
string(JSON value GET "${JSON}" ${path})
message(STATUS "${value}")
