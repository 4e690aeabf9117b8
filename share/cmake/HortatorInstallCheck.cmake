# The programs and libraries that are installed. Included before anything is installed: without one of them `cmake --install` stops before it
# copies the first file.
set(HORTATOR_VERBS hortator_verb_bench hortator_verb_checkpoint hortator_verb_doctor hortator_verb_env hortator_verb_estimate-memory
                   hortator_verb_test hortator_verb_tokenize)
set(HORTATOR_INSTALLED hortator hortator_cli ${HORTATOR_VERBS})
if(HORTATOR_FORTRAN)
  list(APPEND HORTATOR_INSTALLED hortator_fortran)
endif()
set(check "set(missing \"\")\n")
foreach(target IN LISTS HORTATOR_INSTALLED)
  string(APPEND check "if(NOT EXISTS \"$<TARGET_FILE:${target}>\")\n  list(APPEND missing ${target})\nendif()\n")
endforeach()
string(APPEND check "if(missing)
  list(JOIN missing \" \" missing)
  message(FATAL_ERROR \"Nothing was installed, because the build is not complete. Build what is missing, then install again: cmake --build \\\"${PROJECT_BINARY_DIR}\\\" --target \${missing}\")
endif()")
install(CODE "${check}")
