import { Button, Menu } from "@mantine/core";

import { type Form, exportLink } from "../../model/build";
import { useDocument } from "../context";

const FORMS: [Form, string][] = [
  ["yaml", "YAML"],
  ["json", "JSON"],
  ["python", "Python"],
];

/** Commands by a click, and the workflow as a file. */
export function Export() {
  const { id } = useDocument();
  return (
    <>
      <Button
        size="compact-xs"
        variant="default"
        onClick={() => window.dispatchEvent(new Event("samovar-commands"))}
      >
        Commands
      </Button>
      <Menu>
        <Menu.Target>
          <Button size="compact-xs" variant="default">
            Export
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {FORMS.map(([form, title]) => (
            <Menu.Item key={form} component="a" {...exportLink(id, form)}>
              as {title}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
    </>
  );
}
