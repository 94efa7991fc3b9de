@rem Starts the workshop from this folder, which may be read-only; behind it stands what perflings takes.
@"%~dp0perflings.exe" --course "%~dp0course" %*
