# hortator_room(room SOURCES file... [NAME name] [LINKS target...] [TORCH] [NATIVE]): defines one room of src/, the object library hortator_<room>;
# hortator_<name> where a room consists of several libraries. TORCH: its sources include LibTorch.
# NATIVE: they use the types of one MPI, and are compiled again for each of HORTATOR_MPI_ALSO.
# .ci/checks/rooms.txt lists which rooms may include which.
function(hortator_room room)
  cmake_parse_arguments(PARSE_ARGV 1 room "TORCH;NATIVE" "NAME" "SOURCES;LINKS")
  if(NOT room_NAME)
    set(room_NAME ${room})
  endif()
  set(target hortator_${room_NAME})
  list(TRANSFORM room_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/src/${room}/")
  add_library(${target} OBJECT ${room_SOURCES})
  target_include_directories(${target} PUBLIC
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
  target_compile_definitions(${target} PRIVATE HORTATOR_BUILDING)
  target_link_libraries(${target} PRIVATE hortator_flags PUBLIC ${room_LINKS})
  if(room_TORCH)
    target_link_libraries(${target} PUBLIC LibTorch::cpu)
    hortator_use_precompiled_header(${target})
  else()
    hortator_use_precompiled_header(${target} plain)
  endif()
  set_property(GLOBAL APPEND PROPERTY HORTATOR_ROOMS ${target})
  if(room_NATIVE)
    set_property(GLOBAL APPEND PROPERTY HORTATOR_NATIVE_ROOMS ${target})
  endif()
endfunction()
