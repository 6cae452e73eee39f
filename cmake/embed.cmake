# Embeds text files as C++ strings. If CMake runs this file as a script (cmake -P, with INPUT,
# OUTPUT and NAME), the script writes one .cpp. If another CMake file includes this file,
# heddle_embed_header() is defined, which adds the .cpp to a list of sources.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${INPUT}" text)
  file(WRITE "${OUTPUT}" "#include <string_view>

namespace heddle::codegen {

extern const std::string_view ${NAME};
const std::string_view ${NAME} = R\"heddle_text(${text})heddle_text\";

}  // namespace heddle::codegen
")
  return()
endif()

set(heddle_embed_script "${CMAKE_CURRENT_LIST_FILE}")

# Embeds FILE as kRuntimeHeader_<stem>, in a generated source that is appended to the list OUT.
function(heddle_embed_header file out)
  cmake_path(GET file STEM stem)
  set(generated "${PROJECT_BINARY_DIR}/generated/runtime_${stem}.cpp")
  add_custom_command(
    OUTPUT "${generated}"
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${generated} -DNAME=kRuntimeHeader_${stem}
            -P "${heddle_embed_script}"
    DEPENDS "${file}" "${heddle_embed_script}"
    COMMENT "Embedding ${stem}.h"
    VERBATIM)
  set(${out} ${${out}} "${generated}" PARENT_SCOPE)
endfunction()
