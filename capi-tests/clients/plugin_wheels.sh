#!/bin/sh
# Published plugins: OpenZL and Btune, found through BLOSC2_PLUGIN_PATH, through the loader and through Python.
#
# The two JPEG 2000 plugins are not among them: blosc2-openhtj2k 0.1.2 and blosc2-grok 0.3.5 do not find the metalayers in the
# blosc2_schunk of C-Blosc2 3.3.5, whose layout is newer than theirs; with it, as with this library, they are loaded and
# called, and give BLOSC2_ERROR_DATA. CLIENT_PLUGINS names others to be tried.
. "$(dirname "$0")/common.sh"
python_with_requirements
plugins=${CLIENT_PLUGINS:-openzl btune}
rm -rf "$work/site"
for plugin in $plugins; do
  "$python" -m zipfile -e "$(fetch wheel "blosc2-$plugin")" "$work/site"
done
${CC:-cc} -I "$prefix/include" -o "$work/client" "$here/plugin_wheels.c" -L "$prefix/lib" -lblosc2
for plugin in $plugins; do
  echo "BLOSC2_PLUGIN_PATH:"
  BLOSC2_PLUGIN_PATH="$work/site" "$work/client" "$plugin"
  echo "the loader:"
  LD_LIBRARY_PATH="$prefix/lib:$work/site/blosc2_$plugin" "$work/client" "$plugin"
  if PYTHONPATH="$work/site" "$python" -c "import blosc2_$plugin" 2> /dev/null; then
    echo "Python:"
    PYTHONPATH="$work/site" "$work/client" "$plugin"
  else
    echo "Python: what blosc2_$plugin imports is not installed"
  fi
done
echo "round trips: $plugins" > "$work/summary"
