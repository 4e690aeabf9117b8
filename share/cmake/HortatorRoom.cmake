# hortator_room(name SOURCES file... [LINKS target...] [TORCH]): defines one room, the object library hortator_<name> of src/<name>.
# TORCH: its sources include LibTorch and use the precompiled header. .ci/checks/rooms.txt lists which rooms may include which.
function(hortator_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "TORCH" "" "SOURCES;LINKS")
  list(TRANSFORM room_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/src/${name}/")
  add_library(hortator_${name} OBJECT ${room_SOURCES})
  target_include_directories(hortator_${name} PUBLIC
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
  target_compile_definitions(hortator_${name} PRIVATE HORTATOR_BUILDING)
  target_link_libraries(hortator_${name} PRIVATE hortator_flags PUBLIC ${room_LINKS})
  if(room_TORCH)
    target_link_libraries(hortator_${name} PUBLIC LibTorch::cpu)
    hortator_use_precompiled_header(hortator_${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY HORTATOR_ROOMS hortator_${name})
endfunction()
