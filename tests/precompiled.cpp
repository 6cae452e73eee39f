// The source file of the target heddle_test_headers, which holds the precompiled headers of the
// tests (see CMakeLists.txt).
int main() { return 0; }
